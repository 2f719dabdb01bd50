/** The last noted requests, searched by id. A ring buffer, so that adding one is a single write. */
import type { NotedRequest } from './noted-request.js'

const MOST_REQUESTS = 2_000

export class RequestRing {
  readonly #requests: NotedRequest[] = []
  /** When each ended, in ms since 1970. */
  readonly #endedAt = new Float64Array(MOST_REQUESTS)
  #next = 0

  add(request: NotedRequest, endedAt: number): void {
    this.#requests[this.#next] = request
    this.#endedAt[this.#next] = endedAt
    this.#next = (this.#next + 1) % MOST_REQUESTS
  }

  /** The newest with this id. */
  find(id: string): { request: NotedRequest; endedAt: number } | undefined {
    const { length } = this.#requests
    for (let back = 1; back <= length; back++) {
      const at = (this.#next - back + length) % length
      const request = this.#requests[at] as NotedRequest
      if (request.id === id) return { request, endedAt: this.#endedAt[at] as number }
    }
    return undefined
  }
}
