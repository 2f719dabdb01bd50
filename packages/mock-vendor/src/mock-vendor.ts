/**
 * A vendor on a local port: answers like OpenAI, Azure OpenAI, Anthropic and Gemini, streamed or not, has limits, fails on
 * demand and records all requests. In real time, over real sockets, for tests of clients, gateways and
 * SDKs. For virtual time use `createVendor`.
 */
import { arrayOf, type Duration, duration, validate } from 'spillway/options'
import { type MockKnobs, readKnobs } from './knobs.js'
import type { MockArrivals, MockCall, MockCounts } from './log.js'
import { type MockVendorOptions, readOptions } from './options.js'
import { type MockLimit, readLimit } from './quota/contract.js'
import { VendorServer } from './server.js'

/** Counts of connections. */
export interface MockSockets {
  /** Connections that are open now. */
  readonly open: number
  /** Most connections that were open at once. */
  readonly mostOpen: number
  /** All connections so far. */
  readonly opened: number
}

/** A vendor on a local port, controlled by knobs. It records all requests. */
export interface MockVendor {
  /** Listens; after `close()` again on the same port. */
  start(): Promise<{ url: string; port: number }>
  /** Destroys every connection and stops listening. */
  close(): Promise<void>
  /** Sets these knobs, for all requests or those of a model, from the next request on. */
  set(knobs: MockKnobs, model?: string): void
  /** Replaces the limits and their counts. */
  setLimits(limits: readonly MockLimit[]): void
  /** Restores the initial knobs and limits. */
  reset(): void

  /** In order of arrival; each changes until it has ended. */
  readonly calls: readonly MockCall[]
  /** Counts of requests by how they ended. */
  readonly counts: Readonly<MockCounts>
  /** Requests in flight. */
  readonly atOnce: number
  /** Most requests in flight so far. */
  readonly mostAtOnce: number
  /** Counts of connections. */
  readonly sockets: MockSockets
  /**
   * Largest number of requests, including refused ones, in any window of this length. Two requests exactly this far
   * apart are in different windows.
   */
  mostInAnyWindow(windowMs: Duration, which?: MockArrivals): number
  /** Resolves when no request is in flight. */
  waitForIdle(): Promise<void>
  /** Drops all calls and counts except those of open requests. */
  clear(): void
}

/**
 * Creates a vendor on a local port that answers like OpenAI, Azure OpenAI, Anthropic and Gemini.
 *
 * @example
 * const vendor = createMockVendor({ limits: [{ limit: 60, windowMs: '1m' }] })
 * const { url } = await vendor.start()
 * vendor.set({ status: 503, errorRate: 0.5 })
 */
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
