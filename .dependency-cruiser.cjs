// Which folder of packages/spillway/src may import which. The table is the architecture: a mechanism
// that needs a row widened is usually in the wrong folder. Tests are exempt.

const SRC = '^packages/spillway/src/'
const TEST = '\\.test\\.ts$'
// A subpath's entry puts together what its users need, from whichever folders.
const ENTRY = '/index\\.ts$'

// shared/ speaks to the port; which store stands behind it is the application's choice, and who makes
// none gets the one in memory.
const STORE_PORT = 'store/([^/]+|memory/memory-store)\\.ts$'
const MECHANISMS = ['core/', 'local/', 'shared/', 'store/']
const AROUND_A_GUARD = [...MECHANISMS, 'guard/']

const MAY_IMPORT = {
  core: [],
  local: ['core/'],
  store: ['core/'],
  shared: ['core/', STORE_PORT],
  guard: MECHANISMS,
  degrade: AROUND_A_GUARD,
  health: AROUND_A_GUARD,
  operate: AROUND_A_GUARD,
  http: [...AROUND_A_GUARD, 'health/', 'operate/'],
  options: ['core/', 'guard/'],
  observe: AROUND_A_GUARD,
  // Its entry is for the other packages of this repository and exports from every folder but testing/.
  internal: [],
  testing: [''],
}

const folderRules = Object.entries(MAY_IMPORT).map(([folder, allowed]) => ({
  name: `${folder}-imports`,
  comment: `${folder}/ may import only: ${allowed.join(', ') || 'itself'}`,
  severity: 'error',
  from: { path: `${SRC}${folder}/`, pathNot: [TEST, ENTRY] },
  to: { path: SRC, pathNot: `${SRC}(${[`${folder}/`, ...allowed].join('|')})` },
}))

// Packages the application installs if it wants what needs them, each for one file (and its parts).
const OPTIONAL_PEERS = {
  fastify: 'http/fastify\\.ts$',
  hono: 'http/hono\\.ts$',
  '(@nestjs|rxjs)': 'http/nest\\.ts$',
  axios: 'guard/fetch/axios\\.ts$',
  piscina: 'local/bulkhead/worker-[\\w-]+\\.ts$',
  redis: 'store/redis/drivers/node-redis\\.ts$',
  ioredis: 'store/redis/drivers/ioredis\\.ts$',
}
const NOT_SHIPPED = ['npm-dev', 'npm-peer', 'npm-no-pkg', 'npm-unknown', 'unknown']

const peerRules = Object.entries(OPTIONAL_PEERS).map(([peer, file]) => ({
  name: `${peer}-only`,
  comment: `of what is not shipped, this file may import ${peer}, an optional peer, and nothing else`,
  severity: 'error',
  from: { path: `${SRC}${file}` },
  to: { dependencyTypes: NOT_SHIPPED, pathNot: `(^|/)node_modules/${peer}/` },
}))

// The gateway's folders: what reads a file knows nothing of requests, what passes requests on nothing of
// logs, and only gateway.ts puts them together.
const GATEWAY = '^packages/gateway/src/'
const GATEWAY_MAY_IMPORT = {
  // Paths and names in a file are checked as those of requests are.
  config: ['request/'],
  // The path of a request, in this order. A folder may also use types and checks of the folders before it.
  server: ['config/', 'request/', 'routing/', 'response/'],
  request: ['config/', 'protocols/', 'routing/', 'vendor/', 'response/', 'degrade/'],
  routing: ['config/', 'protocols/', 'request/', 'vendor/', 'response/', 'degrade/'],
  vendor: ['config/', 'protocols/', 'request/', 'routing/', 'response/'],
  response: ['config/', 'protocols/', 'request/', 'vendor/', 'degrade/'],
  degrade: ['config/', 'request/', 'routing/', 'vendor/', 'response/'],
  protocols: ['config/', 'request/body/json-object\\.ts'],
  jobs: ['config/', 'request/', 'routing/', 'vendor/', 'response/'],
  admin: [],
  observe: ['config/', 'request/', 'response/'],
  cli: [
    'config/',
    'reload/',
    'workers/',
    'server/stale-socket\\.ts',
    'gateway\\.ts',
    'shared-store\\.ts',
  ],
  workers: ['reload/', 'response/linger\\.ts'],
  reload: ['config/'],
  demo: ['config/'],
  bin: ['config/', 'cli/'],
}

const gatewayRules = Object.entries(GATEWAY_MAY_IMPORT).map(([folder, allowed]) => ({
  name: `gateway-${folder}-imports`,
  comment: `${folder}/ may import only: ${allowed.join(', ') || 'itself'}`,
  severity: 'error',
  from: { path: `${GATEWAY}${folder}/`, pathNot: [TEST] },
  to: { path: GATEWAY, pathNot: `${GATEWAY}(${[`${folder}/`, ...allowed].join('|')})` },
}))

// The simulator's: a scenario is data, a run fills a record, and reports and plans look at what came out.
const SIMULATOR = '^packages/simulator/src/'
const SIMULATOR_MAY_IMPORT = {
  scenario: [],
  measure: ['scenario/'],
  run: ['scenario/', 'measure/'],
  scenarios: ['scenario/'],
  report: ['scenario/', 'measure/', 'run/simulate\\.ts'],
  plan: ['scenario/', 'run/simulate\\.ts', 'report/format\\.ts'],
}

const simulatorRules = Object.entries(SIMULATOR_MAY_IMPORT).map(([folder, allowed]) => ({
  name: `simulator-${folder}-imports`,
  comment: `${folder}/ may import only: ${allowed.join(', ') || 'itself'}`,
  severity: 'error',
  from: { path: `${SIMULATOR}${folder}/`, pathNot: [TEST] },
  to: { path: SIMULATOR, pathNot: `${SIMULATOR}(${[`${folder}/`, ...allowed].join('|')})` },
}))

// The dashboard's: what is known does not depend on how it is shown.
const dashboardRule = {
  name: 'dashboard-model-imports',
  comment: 'model/ knows nothing of view/ and style/',
  severity: 'error',
  from: { path: '^packages/dashboard/page/src/model/', pathNot: [TEST] },
  to: { path: '^packages/dashboard/page/src/(view|style|main)' },
}

module.exports = {
  forbidden: [
    dashboardRule,
    ...folderRules,
    ...gatewayRules,
    ...simulatorRules,
    {
      name: 'folder-without-a-row',
      comment: 'a new folder (or a file beside index.ts) needs a row in MAY_IMPORT first',
      severity: 'error',
      from: {
        path: SRC,
        pathNot: [TEST, `${SRC}index\\.ts$`, `${SRC}(${Object.keys(MAY_IMPORT).join('|')})/`],
      },
      to: {},
    },
    {
      name: 'testing-is-for-tests',
      comment: 'fakes and conformance suites never reach production code',
      severity: 'error',
      from: { path: SRC, pathNot: [TEST, `${SRC}testing/`] },
      to: { path: `${SRC}testing/` },
    },
    {
      name: 'testing-stays-out-of-production',
      comment:
        'the gateway, the dashboard and the mock vendor run in production; the simulator does not',
      severity: 'error',
      from: { path: '^packages/(gateway|dashboard|mock-vendor)/src/', pathNot: TEST },
      to: { path: '^packages/spillway/(src|dist)/testing/' },
    },
    {
      name: 'no-test-imports',
      comment: 'no other file may import a test file',
      severity: 'error',
      from: { path: SRC, pathNot: TEST },
      to: { path: TEST },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-unshipped-packages',
      comment: 'users install none of our devDependencies; optional peers have a file each',
      severity: 'error',
      from: { path: SRC, pathNot: [TEST, `${SRC}(${Object.values(OPTIONAL_PEERS).join('|')})`] },
      to: { dependencyTypes: NOT_SHIPPED },
    },
    ...peerRules,
    {
      name: 'no-self-import',
      comment: 'importing the package by its own name would walk around the folder rules',
      severity: 'error',
      from: { path: SRC, pathNot: TEST },
      to: { path: '^packages/spillway/dist/' },
    },
    {
      // Not for tests: what they import by the package's own name exists only after a build.
      name: 'resolvable',
      severity: 'error',
      from: { path: SRC, pathNot: TEST },
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: ['node_modules', '/dist/'] },
    // A type-only import ties two folders together just as well.
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['types', 'import', 'default'],
    },
  },
}
