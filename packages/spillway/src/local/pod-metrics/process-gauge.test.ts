import { afterEach, expect, it, vi } from 'vitest'
import { readProcess } from './process-gauge.js'

afterEach(() => {
  vi.restoreAllMocks()
})

it('a process with too many open files still has a reading', () => {
  vi.spyOn(process.memoryUsage, 'rss').mockImplementation(() => {
    throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })
  })
  expect(readProcess()).toMatchObject({ memoryMb: 0 })
})
