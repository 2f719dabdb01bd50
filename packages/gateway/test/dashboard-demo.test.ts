import { createMockVendor } from '@spillway/mock-vendor'
import { createSpillway } from 'spillway'
import { expect, it, onTestFinished } from 'vitest'
import type { VendorConfig } from '../src/config/config.js'
import { Demo } from '../src/demo/demo.js'

it('a demo whose load failed to start can be started later', async () => {
  const spillway = createSpillway()
  const mock = createMockVendor()
  let works = false
  const demo = new Demo({
    get vendors(): VendorConfig[] {
      if (!works) throw new Error('not yet')
      return []
    },
    mock,
    mockUrl: 'http://127.0.0.1:9',
    store: spillway.store,
    gatewayUrl: () => 'http://127.0.0.1:9',
  })
  onTestFinished(async () => {
    await demo.close()
    await spillway.close({ graceMs: 0 })
  })
  await expect(demo.set({ load: true })).rejects.toThrow('not yet')
  expect(demo.state()).toEqual({ load: false, broken: false })
  works = true
  await demo.set({ load: true, broken: true })
  expect(demo.state()).toEqual({ load: true, broken: true })
  await demo.close()
  expect(demo.state()).toEqual({ load: false, broken: false })
})
