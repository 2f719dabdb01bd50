/** `spillway mock-vendor`: a simulated vendor on this machine whose faults are options. */

import { once } from 'node:events'
import type { MockVendorOptions } from '@spillway/mock-vendor'
import { documentationUrl } from 'spillway/internal'
import { type CommandRow, EXIT, HELP_OPTION, type OptionRows } from '../command.js'
import { noArguments, parseArguments, readPort, readWhole, UsageError } from '../parse-args.js'

const OPTIONS = {
  port: {
    type: 'string',
    short: 'p',
    value: 'N',
    about: 'port to listen on. Default: 9090; 0: any free port',
  },
  host: { type: 'string', value: 'HOST', about: 'address to listen on. Default: 127.0.0.1' },
  limit: {
    type: 'string',
    multiple: true,
    value: 'N/TIME',
    about: 'rate limit, such as 60/1m or "9000 tokens/1m"; may be repeated',
  },
  quota: {
    type: 'string',
    value: 'VENDOR',
    about: 'count limits like openai, anthropic, azure, bedrock or gemini',
  },
  latency: { type: 'string', value: 'TIME', about: 'time until an answer begins, such as 200ms' },
  tokens: { type: 'string', value: 'N', about: 'tokens of an answer. Default: 16' },
  'token-time': { type: 'string', value: 'TIME', about: 'time between two tokens' },
  status: { type: 'string', value: 'N', about: 'answer with this status, 400 to 599' },
  'error-rate': {
    type: 'string',
    value: 'SHARE',
    about: 'share of requests that fail, 0 to 1',
  },
  knobs: {
    type: 'string',
    value: 'JSON',
    about: `other options, see ${documentationUrl('how-to/mock-vendor')}`,
  },
  seed: { type: 'string', value: 'N', about: 'seed of the random numbers. Default: 1' },
  ...HELP_OPTION,
} as const satisfies OptionRows

const DEFAULT_PORT = 9_090

export const mockVendorCommand: CommandRow = {
  name: 'mock-vendor',
  summary: 'Run a mock of OpenAI, Azure, Anthropic and Gemini on this machine',
  usage: ['[--port N] [--limit N/TIME] [--latency TIME] [--error-rate SHARE] [--knobs JSON]'],
  options: OPTIONS,
  notes: `spillway mock-vendor --limit 60/1m --latency 300ms --error-rate 0.1 --knobs '{"status": 503}'
A single request sets the same knobs with the header x-mock: {"status": 503}`,
  async run(args) {
    const { values, positionals } = parseArguments(args, OPTIONS)
    noArguments(positionals)
    const { status, tokens, seed, latency, host } = values
    const tokenMs = values['token-time']
    const knobs = {
      ...readKnobs(values.knobs),
      ...(latency !== undefined && { latencyMs: latency }),
      ...(tokens !== undefined && { tokens: readWhole('--tokens', tokens, { min: 0 }) }),
      ...(tokenMs !== undefined && { tokenMs }),
      ...(status !== undefined && {
        status: readWhole('--status', status, { min: 400, max: 599 }),
      }),
      ...(values['error-rate'] !== undefined && { errorRate: Number(values['error-rate']) }),
    }
    await runMockVendor({
      port: readPort('--port', values.port) ?? DEFAULT_PORT,
      host,
      knobs,
      limits: values.limit?.map(readContract),
      quota: values.quota,
      seed: readWhole('--seed', seed, { min: 0 }),
    })
    return EXIT.ok
  },
}

function readKnobs(text: string | undefined): object {
  if (text === undefined) return {}
  try {
    const knobs: unknown = JSON.parse(text)
    if (typeof knobs === 'object' && knobs !== null && !Array.isArray(knobs)) return knobs
  } catch {}
  throw new UsageError(`--knobs: must be JSON such as {"status": 503}, got "${text}"`)
}

/** `60/1m`, or `9000 tokens/1m`. */
function readContract(text: string) {
  const found = /^(\d+)(?:\s*([a-z]\w*))?\/(\S+)$/i.exec(text)
  if (found === null) {
    throw new UsageError(`--limit: must be like 60/1m or "9000 tokens/1m", got "${text}"`)
  }
  const [, limit, unit = 'requests', windowMs] = found
  return { unit, limit: Number(limit), windowMs }
}

/** The value as typed. `createMockVendor` validates it. */
interface MockVendorArguments {
  readonly port: number
  readonly host: string | undefined
  readonly knobs: object
  readonly limits: readonly object[] | undefined
  readonly quota: string | undefined
  readonly seed: number | undefined
}

/** Runs a mock vendor until SIGINT or SIGTERM. */
async function runMockVendor(typed: MockVendorArguments): Promise<void> {
  const { createMockVendor } = await import('@spillway/mock-vendor')
  const vendor = createMockVendor(typed as MockVendorOptions)
  const { url } = await vendor.start()
  process.stderr.write(`Mock vendor on ${url}

Try:
  curl -s ${url}/v1/chat/completions -H 'content-type: application/json' -d '{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}'

Ctrl-C stops it.
`)
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
  const { counts } = vendor
  await vendor.close()
  process.stderr.write(`\nrequests: ${JSON.stringify(counts)}\n`)
}
