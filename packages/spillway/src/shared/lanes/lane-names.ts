/** The lane of calls that name none. */
export const DEFAULT_LANE = 'default'

/** Shared by calls whose own lane does not exist, because there are `maxLanes` already. */
export const OTHER_LANE = '(other)'

/** Not a lane of calls: state that applies to all lanes of a guard. */
export const ALL_LANES = ''
