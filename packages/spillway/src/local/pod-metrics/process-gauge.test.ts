import { expect, it, onTestFinished, vi } from 'vitest'
import { readProcess } from './process-gauge.js'

it('a process with too many open files still has a reading', () => {
  onTestFinished(() => void vi.restoreAllMocks())
  vi.spyOn(process.memoryUsage, 'rss').mockImplementation(() => {
    throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })
  })
  // Later than any reading of another test that is still recent.
  const upSeconds = process.uptime() + 2
  vi.spyOn(process, 'uptime').mockReturnValue(upSeconds)
  const { upMs, memoryMb } = readProcess()
  expect(upMs).toBe(upSeconds * 1_000)
  expect(memoryMb).toBeGreaterThanOrEqual(0)
})
