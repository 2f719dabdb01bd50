/** The lane of calls that name none. */
export const DEFAULT_LANE = 'default'
