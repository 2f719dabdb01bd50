/** What was wanted cannot be had, for a reason that a person can do something about. */
import { EXIT } from './command.js'

export class CommandError extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number = EXIT.failure) {
    super(message)
    this.exitCode = exitCode
  }
}
