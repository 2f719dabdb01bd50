/**
 * If a clock goes back by less than this, state waits for it to catch up. A larger jump means that
 * the clock was set or that another server answers, so times are rebased.
 */
export const SET_BACK_US = 5_000_000
