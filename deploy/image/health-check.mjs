// Health check of the image: exit code 0 while the admin port answers /health/live.
// SPILLWAY_ADMIN_PORT: port of the admin server. Default: 8081.

const port = process.env.SPILLWAY_ADMIN_PORT ?? '8081'
const answer = await fetch(`http://127.0.0.1:${port}/health/live`, {
  signal: AbortSignal.timeout(2_000),
}).catch(() => undefined)
process.exitCode = answer?.ok === true ? 0 : 1
