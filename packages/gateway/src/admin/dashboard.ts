/** The dashboard on the admin port. */

export const DASHBOARD_PATH = '/dashboard'

/** The dashboard answers these paths itself, with headers of its own. */
export function isDashboardPath(path: string): boolean {
  return path === DASHBOARD_PATH || path.startsWith(`${DASHBOARD_PATH}/`)
}
