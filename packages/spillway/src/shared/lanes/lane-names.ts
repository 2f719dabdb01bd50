/** The lane of calls that name none. */
export const DEFAULT_LANE = 'default'

/** Shared by calls whose own lane does not exist, because there are `maxLanes` already. */
export const OTHER_LANE = '(other)'

/** As `OTHER_LANE`, for names that match an entry of the option `lanes`: its limits apply. */
export function overflowLane(match: string): string {
  return `(other ${match})`
}

/** Lanes that calls of several names share: information about one name does not apply to the others. */
export function isOverflowLane(lane: string): boolean {
  return lane.startsWith('(other')
}

/** Not a lane of calls: state that applies to all lanes of a guard. */
export const ALL_LANES = ''
