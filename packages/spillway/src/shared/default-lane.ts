/** The lane of calls that name none. */
export const DEFAULT_LANE = 'default'

/** No lane of calls: what holds for all of them. */
export const ALL_LANES = ''
