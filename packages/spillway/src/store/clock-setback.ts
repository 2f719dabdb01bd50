/** A clock that is behind by less than this is waited for; by more, it was set, or is another one. */
export const SET_BACK_US = 5_000_000
