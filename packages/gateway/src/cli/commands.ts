/** The command table, in the order of the help. Add a command as a row. */

import type { CommandRow } from './command.js'
import { auditCommand } from './commands/audit.js'
import { breakerCommand } from './commands/breaker.js'
import { checkCommand } from './commands/check.js'
import { completionsCommand } from './commands/completions.js'
import { doctorCommand } from './commands/doctor.js'
import { explainCommand } from './commands/explain.js'
import { gatewayCommand } from './commands/gateway.js'
import { hashKeyCommand } from './commands/hash-key.js'
import { initCommand } from './commands/init.js'
import { jobQueueCommand } from './commands/job-queue.js'
import { keyCommand } from './commands/key.js'
import { limitCommand } from './commands/limit.js'
import { mockVendorCommand } from './commands/mock-vendor.js'
import { pauseCommand, resumeCommand } from './commands/pause.js'
import { planCommand } from './commands/plan.js'
import { schemaCommand } from './commands/schema.js'
import { simulateCommand } from './commands/simulate.js'
import { statusCommand } from './commands/status.js'

export const COMMANDS: readonly CommandRow[] = [
  gatewayCommand,
  initCommand,
  checkCommand,
  schemaCommand,
  hashKeyCommand,
  doctorCommand,
  statusCommand,
  explainCommand,
  auditCommand,
  breakerCommand,
  limitCommand,
  keyCommand,
  pauseCommand,
  resumeCommand,
  jobQueueCommand,
  simulateCommand,
  planCommand,
  mockVendorCommand,
  completionsCommand(() => COMMANDS),
]
