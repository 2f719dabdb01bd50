/** The limiter refused the call. */
export class Refused extends Error {
  constructor(retryAfterMs) {
    super('refused')
    this.retryAfterMs = retryAfterMs
  }
}
