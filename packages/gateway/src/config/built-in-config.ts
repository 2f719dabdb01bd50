/** The configuration without a file: a mock vendor inside the gateway, with the guard of a real one. */
import type { GatewayConfig } from './config.js'
import { type LoadOptions, loadConfig } from './load.js'

/** In the format of a configuration file. */
const BUILT_IN_YAML = `# A vendor inside the gateway, for both protocols: it needs no key, and nothing leaves this machine.
host: 127.0.0.1
vendors:
  openai: &guarded
    protocol: openai
    url: mock
    shed: { maxQueue: 400 }
    userLimits:
      - { per: user, limit: 300, windowMs: 1m }
    queue: { size: 450, timeoutMs: 5s }
    breaker: { failureRate: 0.5, consecutiveFailures: 10, windowMs: 30s, minimumCalls: 10, openMs: 10s }
    limits:
      - { unit: requests, limit: 500, windowMs: 1m }
      - { unit: tokens, limit: 90000, windowMs: 1m }
    concurrency: { limit: 50 }
    timeout: { firstByteMs: 10s, idleMs: 15s }
    retry: { attempts: 3, budget: 0.2 }
  anthropic:
    <<: *guarded
    protocol: anthropic
# Requests that may wait (Prefer: respond-async), two at a time.
jobQueues:
  later: { vendor: openai, model: gpt-4.1-nano, concurrency: 2, resultMs: 10m, deadMs: 10m }
`

export function builtInConfig(options: Pick<LoadOptions, 'env'> = {}): GatewayConfig {
  return loadConfig({ ...options, file: 'built-in configuration', text: BUILT_IN_YAML })
}
