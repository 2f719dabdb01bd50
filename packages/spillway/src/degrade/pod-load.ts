/**
 * The load of this process as fractions: of its CPUs or its main thread, whichever is higher, and
 * of its memory. Each reading covers the time since the last one.
 */
import { availableParallelism, totalmem } from 'node:os'
import { performance } from 'node:perf_hooks'

/** Load of this pod, as a feature manager reads it. */
export interface PodLoad {
  /** 1 is everything available. */
  cpu: number
  /** Memory used; 1 is everything available. */
  memory: number
}

export function createPodLoad(nowMs: () => number): () => PodLoad {
  const cores = availableParallelism()
  // A container's limit, if there is one.
  const mostBytes = Math.min(process.constrainedMemory() || Infinity, totalmem())
  let lastMs = nowMs()
  let lastCpu = process.cpuUsage()
  let lastLoop = performance.eventLoopUtilization()
  let memory = 0
  return () => {
    const atMs = nowMs()
    const cpu = process.cpuUsage(lastCpu)
    const { utilization } = performance.eventLoopUtilization(lastLoop)
    const elapsedUs = Math.max(1, (atMs - lastMs) * 1_000)
    lastMs = atMs
    lastCpu = process.cpuUsage()
    lastLoop = performance.eventLoopUtilization()
    const ofCores = (cpu.user + cpu.system) / elapsedUs / cores
    try {
      memory = process.memoryUsage.rss() / mostBytes
    } catch {
      // Node reads a file, which fails while the process has too many open files. Then the last figure counts.
    }
    return { cpu: Math.min(1, Math.max(ofCores, utilization)), memory }
  }
}
