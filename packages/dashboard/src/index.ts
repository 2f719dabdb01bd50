export type { DashboardDemo } from './acts.js'
export { createDashboard, type Dashboard, type DashboardOptions } from './dashboard.js'
