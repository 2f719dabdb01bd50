import { createRandom, createVirtualClock } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import { createVendor, VendorError } from './vendor.js'

function setUp() {
  const clock = createVirtualClock()
  const vendor = createVendor({ servers: 20, workMs: 100, clock, random: createRandom(1) })
  /** Makes `calls` concurrent calls and returns the milliseconds until the last answer. */
  async function burst(calls: number): Promise<number> {
    const startMs = clock.now()
    await clock.until(Promise.allSettled(Array.from({ length: calls }, () => vendor.call())))
    return clock.now() - startMs
  }
  return { clock, vendor, burst }
}

describe('vendor of the overloaded-pod example', () => {
  it('the vendor serves one call per server at full speed', async () => {
    const { burst } = setUp()
    const tookMs = await burst(20)
    expect(tookMs).toBeGreaterThan(100)
    expect(tookMs).toBeLessThanOrEqual(130)
  })

  it('the vendor loses throughput when it has too many calls at once', async () => {
    const { burst } = setUp()
    expect(await burst(100)).toBeGreaterThan(1.1 * 500)
  })

  it('the vendor rejects calls when it has far too many', async () => {
    const { clock, vendor } = setUp()
    const calls = Array.from({ length: 2_000 }, () => vendor.call())
    const ends = await clock.until(Promise.allSettled(calls))
    const statuses = ends.map((end) => end.status === 'rejected' && end.reason.status)
    expect(statuses.filter((status) => status === 503).length).toBeGreaterThan(500)
  })

  it('the vendor drops the work of an aborted call', async () => {
    const { clock, vendor } = setUp()
    const caller = new AbortController()
    const call = vendor.call(caller.signal)
    caller.abort(new Error('hung up'))
    await expect(call).rejects.toThrow('hung up')
    expect(vendor.inFlight).toBe(0)
    expect(clock.pending).toBe(0)
  })

  it('a closed vendor leaves nothing behind', async () => {
    const { clock, vendor } = setUp()
    const call = vendor.call()
    vendor.close()
    await expect(call).rejects.toThrow(VendorError)
    await expect(vendor.call()).rejects.toThrow(VendorError)
    expect(clock.pending).toBe(0)
  })
})
