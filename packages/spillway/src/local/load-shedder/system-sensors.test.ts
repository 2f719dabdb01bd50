import { afterEach, expect, it, vi } from 'vitest'
import { SystemSensors } from './system-sensors.js'

afterEach(() => void vi.restoreAllMocks())

it('memory of a process with too many open files is the last figure that could be read', () => {
  const sensors = new SystemSensors()
  const before = sensors.memory()
  expect(before).toBeGreaterThan(0)
  vi.spyOn(process, 'memoryUsage').mockImplementation(() => {
    throw Object.assign(new Error('too many open files'), { code: 'EMFILE' })
  })
  expect(sensors.memory()).toBe(before)
})
