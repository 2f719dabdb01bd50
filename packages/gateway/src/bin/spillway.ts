#!/usr/bin/env node
/** The command `spillway`. */
import { runProgram } from '../cli/run-program.js'

process.exitCode = await runProgram(process.argv.slice(2))
