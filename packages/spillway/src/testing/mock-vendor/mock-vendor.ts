/**
 * A vendor on a port of this machine: speaks OpenAI's chat completions and Anthropic's messages,
 * streamed or not, has limits of its own, misbehaves as told and remembers who came when. In real
 * time, over real sockets: for tests of clients, gateways and SDKs. `createVendor` is the one for
 * virtual time.
 */
import { arrayOf, type Duration, duration, validate } from '../../core/options/checks.js'
import { type MockKnobs, readKnobs } from './knobs.js'
import { type MockLimit, readLimit } from './limits.js'
import type { MockArrivals, MockCall, MockCounts } from './log.js'
import { type MockVendorOptions, readOptions } from './options.js'
import { VendorServer } from './server.js'

export interface MockSockets {
  readonly open: number
  readonly mostOpen: number
  readonly opened: number
}

export interface MockVendor {
  /** Listens; after `close()` once more, on the same port. */
  start(): Promise<{ url: string; port: number }>
  /** Destroys every connection and stops listening. */
  close(): Promise<void>
  /** Turns these knobs, for all requests or those of a model, from the next request on. */
  set(knobs: MockKnobs, model?: string): void
  /** A new contract; what was counted under the old one is forgotten. */
  setLimits(limits: readonly MockLimit[]): void
  /** Knobs and limits as they were in the beginning. */
  reset(): void

  /** In order of arrival; each goes on changing until it has ended. */
  readonly calls: readonly MockCall[]
  readonly counts: Readonly<MockCounts>
  /** Requests inside now, and the most ever. */
  readonly atOnce: number
  readonly mostAtOnce: number
  readonly sockets: MockSockets
  /**
   * The most that arrived in any stretch of this length, wherever it begins, refused ones included.
   * Two exactly this far apart are not in one.
   */
  mostInAnyWindow(windowMs: Duration, which?: MockArrivals): number
  /** When no request is inside: at once if none is now. */
  waitForIdle(): Promise<void>
  /** Forgets all calls and counts but those of open requests. */
  clear(): void
}

export function createMockVendor(options: MockVendorOptions = {}): MockVendor {
  const server = new VendorServer(validate('mockVendor', options, readOptions))
  return {
    start: () => server.start(),
    close: () => server.close(),
    set: (knobs, model) => server.set(validate('knobs', knobs, readKnobs), model),
    setLimits: (limits) => server.setLimits(validate('limits', limits, arrayOf(readLimit))),
    reset: () => server.reset(),
    get calls() {
      return server.log.calls
    },
    get counts() {
      return server.log.counts
    },
    get atOnce() {
      return server.log.atOnce
    },
    get mostAtOnce() {
      return server.log.mostAtOnce
    },
    get sockets() {
      return server.sockets
    },
    mostInAnyWindow(windowMs, which = {}) {
      return server.log.mostIn(validate('windowMs', windowMs, duration({ min: 0 })), which)
    },
    waitForIdle: () => server.log.whenIdle(),
    clear: () => server.log.clear(),
  }
}
