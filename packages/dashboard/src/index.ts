export type { DashboardDemo } from './acts.js'
export { createDashboard, type Dashboard, type DashboardOptions } from './dashboard.js'
export type { DashboardPeers, DecisionPage, PeerDecisions } from './feed/peer-decisions.js'
export type { Decision } from './wire/decisions.js'
