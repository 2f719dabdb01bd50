/**
 * How loaded this process is, as fractions: of the processors it may use, or of its one main thread, whichever
 * is worse; and of the memory it may use. Each look tells of the time since the last.
 */
import { availableParallelism, totalmem } from 'node:os'
import { performance } from 'node:perf_hooks'

export interface PodLoad {
  /** 1 is all there is. */
  cpu: number
  memory: number
}

export function createPodLoad(nowMs: () => number): () => PodLoad {
  const cores = availableParallelism()
  // A container's limit, where there is one.
  const mostBytes = Math.min(process.constrainedMemory() || Infinity, totalmem())
  let lastMs = nowMs()
  let lastCpu = process.cpuUsage()
  let lastLoop = performance.eventLoopUtilization()
  return () => {
    const atMs = nowMs()
    const cpu = process.cpuUsage(lastCpu)
    const { utilization } = performance.eventLoopUtilization(lastLoop)
    const elapsedUs = Math.max(1, (atMs - lastMs) * 1_000)
    lastMs = atMs
    lastCpu = process.cpuUsage()
    lastLoop = performance.eventLoopUtilization()
    const ofCores = (cpu.user + cpu.system) / elapsedUs / cores
    return {
      cpu: Math.min(1, Math.max(ofCores, utilization)),
      memory: process.memoryUsage.rss() / mostBytes,
    }
  }
}
