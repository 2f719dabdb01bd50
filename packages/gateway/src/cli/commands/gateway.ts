/** `spillway gateway`: starts a gateway. */
import { MAX_WORKERS } from '../../config/shapes/workers-shape.js'
import { type CommandRow, configOption, EXIT, HELP_OPTION, type OptionRows } from '../command.js'
import { noArguments, parseArguments, readPort, readWhole } from '../parse-args.js'

const OPTIONS = {
  ...configOption(
    'the configuration. Default: spillway.yaml, if it exists;\notherwise a built-in one with a mock vendor',
  ),
  port: {
    type: 'string',
    short: 'p',
    value: 'N',
    about: "port for callers. Default: the configuration's, or 8080",
  },
  host: {
    type: 'string',
    value: 'ADDRESS',
    about:
      "address for callers. Default: the configuration's, or 0.0.0.0;\n127.0.0.1 for the built-in one",
  },
  'admin-port': {
    type: 'string',
    value: 'N',
    about: "port for health, metrics and operators. Default: the configuration's, or 8081",
  },
  workers: {
    type: 'string',
    short: 'w',
    value: 'N',
    about:
      "processes that serve requests, or auto for one per core; needs Redis.\nDefault: the configuration's, or 1",
  },
  ...HELP_OPTION,
} as const satisfies OptionRows

export const gatewayCommand: CommandRow = {
  name: 'gateway',
  summary: 'Run the HTTP gateway in front of LLM vendors and other services',
  usage: ['[--config FILE] [--host ADDRESS] [--port N] [--admin-port N] [--workers N]'],
  options: OPTIONS,
  notes: `Environment:
  REDIS_URL             gateways with the same Redis share their limits and breakers
  NAME                  variables that the configuration refers to as env:NAME

SIGTERM or Ctrl-C drains the gateway: readiness fails, running requests finish, and the exit code is 0. A second
Ctrl-C ends it immediately. SIGHUP, or a change of the file, reloads the configuration.`,
  async run(args) {
    const { values, positionals } = parseArguments(args, OPTIONS)
    noArguments(positionals)
    const { runGateway } = await import('../gateway/run-gateway.js')
    await runGateway({
      config: values.config,
      host: values.host,
      port: readPort('--port', values.port),
      adminPort: readPort('--admin-port', values['admin-port']),
      workers: readWorkersOption(values.workers),
    })
    return EXIT.ok
  },
}

function readWorkersOption(text: string | undefined): number | 'auto' | undefined {
  if (text === 'auto') return text
  return readWhole('--workers', text, { min: 1, max: MAX_WORKERS })
}
