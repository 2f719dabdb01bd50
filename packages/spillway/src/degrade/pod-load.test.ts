import { afterEach, expect, it, vi } from 'vitest'
import { createPodLoad } from './pod-load.js'

afterEach(() => void vi.restoreAllMocks())

it('load of a pod with too many open files has the last memory figure that could be read', () => {
  const load = createPodLoad(() => 0)
  const { memory } = load()
  expect(memory).toBeGreaterThan(0)
  vi.spyOn(process.memoryUsage, 'rss').mockImplementation(() => {
    throw Object.assign(new Error('too many open files'), { code: 'EMFILE' })
  })
  expect(load().memory).toBe(memory)
})
