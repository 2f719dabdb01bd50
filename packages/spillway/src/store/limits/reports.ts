/**
 * How many requests each pod made in the last minute, as the pods report it every few seconds. It is only
 * displayed and decides nothing, so it need not be exact. Twins: `redis/lua/report-requests.lua` and the end of
 * `redis/lua/read-limits.lua`.
 */
export type Reports = Map<string, { requests: number; atUs: number }>

/** After this time without a report a pod counts as idle or stopped. */
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
