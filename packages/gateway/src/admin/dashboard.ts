/** The dashboard on the admin port. */

export const DASHBOARD_PATH = '/dashboard'

/** Paths that the dashboard serves, with its own headers. */
export function isDashboardPath(path: string): boolean {
  return path === DASHBOARD_PATH || path.startsWith(`${DASHBOARD_PATH}/`)
}
