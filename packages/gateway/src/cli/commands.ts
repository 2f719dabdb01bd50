/** Every command there is, in the order in which help lists them. A new one is a row here. */
import { breakerCommand } from './breaker-command.js'
import { checkCommand } from './check-command.js'
import type { CommandRow } from './command-row.js'
import { completionsCommand } from './completions-command.js'
import { doctorCommand } from './doctor-command.js'
import { gatewayCommand } from './gateway-command.js'
import { hashKeyCommand } from './hash-key-command.js'
import { initCommand } from './init-command.js'
import { limitCommand } from './limit-command.js'
import { mockVendorCommand } from './mock-vendor-command.js'
import { pauseCommand, resumeCommand } from './pause-command.js'
import { planCommand } from './plan-command.js'
import { queueCommand } from './queue-command.js'
import { schemaCommand } from './schema-command.js'
import { simulateCommand } from './simulate-command.js'
import { statusCommand } from './status-command.js'

export const COMMANDS: readonly CommandRow[] = [
  gatewayCommand,
  initCommand,
  checkCommand,
  schemaCommand,
  hashKeyCommand,
  doctorCommand,
  statusCommand,
  breakerCommand,
  limitCommand,
  pauseCommand,
  resumeCommand,
  queueCommand,
  simulateCommand,
  planCommand,
  mockVendorCommand,
  completionsCommand(() => COMMANDS),
]
