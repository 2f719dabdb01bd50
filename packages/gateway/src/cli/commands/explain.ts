/** `spillway explain`: explains what happened to one request. */
import { type CommandRow, EXIT, HELP_OPTION, type OptionRows } from '../command.js'
import { OPERATING_OPTIONS } from '../operate/operate-options.js'
import { parseArguments, UsageError } from '../parse-args.js'

const OPTIONS = {
  json: { type: 'boolean', about: 'write everything as JSON to stdout' },
  ...OPERATING_OPTIONS,
  ...HELP_OPTION,
} as const satisfies OptionRows

export const explainCommand: CommandRow = {
  name: 'explain',
  summary: 'Explain how a request was decided, on any pod',
  usage: ['REQUEST-ID [--json] [--config FILE | --redis URL | --admin URL]'],
  options: OPTIONS,
  notes:
    'The id is the spillway-request-id of an answer. Each pod remembers its last 2,000 requests.\n' +
    'Exit code 0: found. 1: no pod has data about the request. 3: the store, or the gateway, does not answer.',
  async run(args) {
    const { values, positionals } = parseArguments(args, OPTIONS)
    const [requestId, ...more] = positionals
    if (requestId === undefined)
      throw new UsageError('explain: missing request id, the spillway-request-id of an answer')
    if (more.length > 0) throw new UsageError(`explain: unexpected argument "${more.join(' ')}"`)
    const { isRequestId } = await import('@spillway/dashboard')
    if (!isRequestId(requestId)) {
      throw new UsageError(
        'explain: a request id has 1 to 128 letters, digits and the characters _ . : -',
      )
    }
    return explainRequest(requestId, values)
  },
}

interface ExplainValues {
  readonly json?: boolean | undefined
  readonly config?: string | undefined
  readonly admin?: string | undefined
}

async function explainRequest(
  requestId: string,
  { json, ...where }: ExplainValues,
): Promise<number> {
  const { openFleetConnection } = await import('../operate/fleet-connection.js')
  const { explanationText } = await import('../operate/explanation-text.js')
  const { explain, close } = await openFleetConnection(where)
  try {
    const explanation = await explain(requestId)
    const isFound = explanation.request !== undefined || explanation.decisions.length > 0
    process.stdout.write(json ? `${JSON.stringify(explanation)}\n` : explanationText(explanation))
    return isFound ? EXIT.ok : EXIT.failure
  } finally {
    await close()
  }
}
