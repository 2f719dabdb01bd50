/**
 * How many requests each pod made in the last minute, as pods report it now and then. For figures
 * only: nothing is decided by it, so nothing has to be exact. Twins: `redis/lua/report-requests.lua`
 * and the end of `redis/lua/read-limits.lua`.
 */
export type Reports = Map<string, { requests: number; atUs: number }>

/** A pod that has not reported for this long made no requests, or is gone. */
const REPORT_LIFE_US = 60_000_000

export function reportRequests(
  reports: Reports,
  pod: string,
  requests: number,
  nowUs: number,
): void {
  for (const [name, { atUs }] of reports) {
    if (atUs <= nowUs - REPORT_LIFE_US) reports.delete(name)
  }
  reports.set(pod, { requests, atUs: nowUs })
}

export function totalRequests(reports: Reports, nowUs: number): number {
  let total = 0
  for (const { requests, atUs } of reports.values()) {
    if (atUs > nowUs - REPORT_LIFE_US) total += requests
  }
  return total
}
