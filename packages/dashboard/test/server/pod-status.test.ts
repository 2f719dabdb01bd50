import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { VERSION } from '../../../spillway/src/core/version.js'
import {
  type PodStatus,
  packPodStatus,
  readPodStatus,
} from '../../../spillway/src/guard/fleet/pod-status.js'
import { fc } from '../../../spillway/test/fast-check.js'

const GUARD = {
  name: 'openai',
  lanes: ['gpt'],
  calls: 5,
  refused: 1,
  active: 2,
  waiting: 0,
  breaker: 2,
}
const VITALS: PodStatus = {
  version: VERSION,
  upMs: 5_000,
  draining: false,
  drainRequested: true,
  pressure: 0.5,
  pressureBy: 'queue',
  loopMs: 1.5,
  loopBusy: 0.25,
  memoryMb: 80,
  store: 'shared',
  guards: [GUARD],
  notes: [{ number: 3, text: 'an operator acted' }],
}

describe('pod vitals', () => {
  it('vitals keep their values when they are packed and read', () => {
    expect(readPodStatus(JSON.parse(JSON.stringify(packPodStatus(VITALS))))).toEqual(VITALS)
    const calm = { ...VITALS, pressure: undefined, pressureBy: undefined }
    expect(readPodStatus(packPodStatus(calm))).toEqual(calm)
  })

  it('packed vitals stay small for any number and length of guard and lane names', () => {
    const lanes = Array.from({ length: 100 }, (_, lane) => `${lane}-${'x'.repeat(150)}`)
    const guards = Array.from({ length: 1_000 }, (_, guard) => ({
      ...GUARD,
      name: `g${guard}`,
      lanes,
    }))
    const packedText = JSON.stringify(packPodStatus({ ...VITALS, guards }))
    expect(packedText.length).toBeLessThan(100_000)
    const twenty = guards
      .slice(0, 20)
      .map((guard) => ({ ...guard, lanes: ['gpt-4o', 'gpt-4o-mini'] }))
    expect(
      JSON.stringify(packPodStatus({ ...VITALS, guards: twenty, notes: [] })).length,
    ).toBeLessThan(1_500)
  })

  it('invalid vitals of other releases are read without harm', () => {
    const packed = packPodStatus(VITALS)
    expect(readPodStatus({ ...packed, v: 2 })).toBeUndefined()
    expect(readPodStatus(undefined)).toBeUndefined()
    const entry = fc.oneof(fc.anything(), fc.constantFrom(...packed.pod))
    fc.assert(
      fc.property(fc.array(entry), fc.array(fc.anything()), (pod, guards) => {
        const read = readPodStatus({ v: 1, pod, guards })
        expect(read?.guards.every(({ name }) => typeof name === 'string')).toBe(true)
        expect(Number.isFinite(read?.loopMs)).toBe(true)
      }),
    )
  })

  it('VERSION equals the version in package.json', () => {
    const file = new URL('../../../spillway/package.json', import.meta.url)
    expect(VERSION).toBe(JSON.parse(readFileSync(file, 'utf8')).version)
  })
})
