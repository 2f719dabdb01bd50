/** The format of the feed, which is its server's: types only. */
export type * from '../../spillway/src/http/dashboard/wire.js'
