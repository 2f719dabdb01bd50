/** The limiter did not let the call through. */
export class Refused extends Error {
  constructor(retryAfterMs) {
    super('refused')
    this.retryAfterMs = retryAfterMs
  }
}
