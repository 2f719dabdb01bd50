import { documentationUrl } from 'spillway/internal'

/** The file that `spillway init` writes. It works unchanged with a key in OPENAI_API_KEY. */
export const STARTER_CONFIG = `# yaml-language-server: $schema=./spillway.schema.json
# A Spillway gateway. 'spillway check' finds mistakes. Every option:
# ${documentationUrl('gateway/configuration')}

port: 8080 # where callers connect
# host: 127.0.0.1 # only this machine connects; the default is 0.0.0.0, every machine that can reach the port
admin:
  port: 8081 # health, metrics, operating: for operators, not for callers
  # host: 0.0.0.0 # other machines may see health and metrics; to operate they need the token:
  # token: env:SPILLWAY_ADMIN_TOKEN

# Gateways with the same Redis share their limits and breakers. The environment variable REDIS_URL alone is enough;
# these lines are for another variable, Sentinels or a cluster. Without Redis, each gateway has limits of its own.
# redis: env:REDIS_URL
# redis: { sentinels: ['redis://sentinel-1:26379', 'redis://sentinel-2:26379'], master: mymaster }
# redis: { urls: ['redis://node-1:6379', 'redis://node-2:6379'] } # a cluster
# expectedPods: 3 # how many gateways there are, should Redis not answer when they start

vendors:
  openai:
    protocol: openai # or anthropic, gemini, azure, or http for anything else
    key: env:OPENAI_API_KEY # secrets are referred to, never written here: env:NAME or file:PATH
    # url: mock # answers by itself, for trying things out

    # Your contract with the vendor, for all gateways together. Each model has these limits; with per: vendor in a
    # limit, all models share it.
    limits:
      - { unit: requests, limit: 500, windowMs: 1m }
      - { unit: tokens, limit: 90000, windowMs: 1m }
    # If half of at least ten calls fail, all calls are refused for 30 seconds; then a few probes decide.
    breaker: { failureRate: 0.5, minimumCalls: 10, windowMs: 30s, openMs: 30s }
    # Calls that cannot start at once wait here, in order, for at most timeoutMs.
    queue: { size: 450, timeoutMs: 5s }
    # Calls at once from each gateway.
    concurrency: { limit: 50 }
    # No byte for 10 seconds, or silence for 15 in the middle, and the call is given up.
    timeout: { firstByteMs: 10s, idleMs: 15s }
    # Three attempts in all, and never more than 20 % of the calls.
    retry: { attempts: 3, budget: 0.2 }
    # What one user may ask for.
    # userLimits:
    #   - { per: user, limit: 60, windowMs: 1m }

# Without routes, requests that generate or list models go to the vendor above. Files, batches and stored
# responses belong to the whole account: they need a route. A list of routes replaces the default ones.
# routes:
#   - path: /v1/chat/completions
#     models: [gpt-4o, "gpt-4o-*"]
#     vendor: openai
#     fallbacks:
#       - model: gpt-4o-mini
#   - vendor: openai # the default paths

# Without callers, every client that can reach the port is served, with your vendor's key.
# callers:
#   - { key: env:SEARCH_TEAM_KEY, user: search, tier: pro, priority: high }
`
