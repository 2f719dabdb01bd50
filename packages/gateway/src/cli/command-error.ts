/** An error that the user can fix; it is printed without a stack trace. */
import { EXIT } from './command.js'

export class CommandError extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number = EXIT.failure) {
    super(message)
    this.exitCode = exitCode
  }
}
