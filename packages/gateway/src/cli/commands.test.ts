// test-group: io

import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { loadConfig } from '../config/load.js'
import { STORE_OPTIONS } from './command.js'
import { COMMANDS } from './commands.js'
import { errorMessage } from './error-message.js'
import { helpOf } from './help.js'
import { runCommand } from './run-command.js'
import { completionsFor } from './shell-completions.js'

const BIN = fileURLToPath(new URL('../../dist/bin/spillway.js', import.meta.url))

/** The output and the exit code. */
async function run(...args: string[]) {
  let [stdout, stderr] = ['', '']
  const out = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    stdout += text
    return true
  })
  const err = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    stderr += text
    return true
  })
  try {
    const code = await runCommand(args, COMMANDS)
    return { code, stdout, stderr }
  } finally {
    out.mockRestore()
    err.mockRestore()
  }
}

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'cli-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

describe('CLI help', () => {
  it('help lists every command, and each command explains all its options', async () => {
    const { stdout, code } = await run()
    expect(code).toBe(0)
    for (const command of COMMANDS) {
      expect(stdout).toMatch(new RegExp(`spillway ${command.name} +${escaped(command.summary)}`))
      const help = (await run(command.name, '--help')).stdout
      expect(help).toBe(helpOf(command))
      for (const option of Object.keys(command.options)) expect(help).toContain(`--${option}`)
      expect((await run('help', command.name)).stdout).toBe(help)
    }
  })

  it('help fits into a terminal', () => {
    for (const line of COMMANDS.flatMap((each) => helpOf(each).split('\n'))) {
      expect(line.length).toBeLessThanOrEqual(120)
    }
  })
})

describe('CLI usage errors', () => {
  it.each([
    [['queue', 'ls'], 'unknown command "queue"; use job-queue'],
    [['stauts'], 'unknown command "stauts"; did you mean status?'],
    [['--hepl'], 'unknown option --hepl; did you mean --help?'],
    [['status', '--jsno'], 'did you mean --json?'],
    [['status', 'now'], 'unexpected argument "now"'],
    [['status', '--every', '1s'], '--every: needs --watch'],
    [['breaker'], 'breaker: missing action; expected one of: open, close'],
    [['breaker', 'isolte', 'a'], 'did you mean isolate?'],
    [['breaker', 'open'], 'breaker open: missing vendor'],
    [['breaker', 'reset', 'a', '--for', '1m'], '--for: not allowed with breaker reset'],
    [['limit', 'set', 'a', 'requests', '5'], 'limit set: missing duration; use --for 10m'],
    [['limit', 'set', 'a', 'requests', '-5', '--for', '1m'], '-5'],
    [['limit', 'set', 'a', 'requests', 'many', '--for', '1m'], 'must be a whole number'],
    [['pause', 'a'], 'pause: missing duration'],
    [['check', 'none.yaml'], 'none.yaml does not exist; spillway init writes one'],
    [['check'], 'check: missing file; there is no spillway.yaml in this folder'],
    [['status', '--redis', 'cache:6379'], '--redis: must be a URL such as redis://127.0.0.1:6379'],
    [['audit', '--admin', 'http://a', '--prefix', 'b'], '--prefix: not allowed with --admin'],
    [['check', '--config', 'a.yaml', 'b.yaml'], 'unexpected argument "b.yaml"'],
    [['completions', 'powershell'], 'unknown shell "powershell"'],
    [['mock-vendor', '--knobs', '{'], 'must be JSON'],
    [['gateway', '--port', '99999'], 'must be a port'],
  ])('the arguments %j are rejected with a hint', async (args, message) => {
    await expect(run(...args)).rejects.toThrow(message)
  })

  it('a usage error of a command names the help of that command', async () => {
    const hintOf = async (...args: string[]) =>
      errorMessage(await run(...args).catch((error: unknown) => error))
    expect(await hintOf('breaker')).toContain('\nRun spillway breaker --help for usage.')
    expect(await hintOf('stauts')).toContain('\nRun spillway --help for usage.')
  })
})

describe('shell completions', () => {
  it('bash completions cover commands, subcommands and options', () => {
    const script = completionsFor('bash', COMMANDS)
    const complete = (...words: string[]) =>
      execFileSync(
        'bash',
        [
          '-c',
          `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _spillway; echo "\${COMPREPLY[@]}"`,
          '_',
          ...words,
        ],
        { encoding: 'utf8' },
      ).trim()
    expect(complete('spillway', 'sta')).toBe('status')
    expect(complete('spillway', 'breaker', 'is')).toBe('isolate')
    expect(complete('spillway', 'limit', '--fo')).toBe('--for')
    expect(complete('spillway', 'completions', 'f')).toBe('fish')
  })

  it.each(['zsh', 'fish'] as const)('%s completions name every command and option', (shell) => {
    const script = completionsFor(shell, COMMANDS)
    for (const { name, options } of COMMANDS) {
      expect(script).toContain(name)
      for (const option of Object.keys(options)) expect(script).toContain(option)
    }
  })
})

describe('spillway init', () => {
  it('init writes a valid file and its schema, and overwrites nothing without --force', async () => {
    const file = join(folder(), 'spillway.yaml')
    expect((await run('init', file)).code).toBe(0)
    const config = loadConfig({ file, env: { OPENAI_API_KEY: 'k' } })
    expect(config.vendors[0]?.guard.limits).toHaveLength(2)
    const text = readFileSync(file, 'utf8')
    expect(text).toMatch(/^# yaml-language-server: \$schema=\.\/spillway\.schema\.json\n/)
    expect(existsSync(join(file, '../spillway.schema.json'))).toBe(true)
    writeFileSync(file, 'mine')
    const again = await run('init', file)
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('--force') })
    expect(readFileSync(file, 'utf8')).toBe('mine')
    expect((await run('init', file, '--force')).code).toBe(0)
    expect(readFileSync(file, 'utf8')).toBe(text)
  })

  it('the commented parts of the init file are valid when uncommented', async () => {
    const file = join(folder(), 'spillway.yaml')
    await run('init', file)
    const text = readFileSync(file, 'utf8')
    const routed = text.replace(/^# (?=routes:|callers:| {2})/gm, '')
    expect(
      loadConfig({ file, text: routed, env: { OPENAI_API_KEY: 'k', SEARCH_TEAM_KEY: 'k' } }).routes,
    ).toHaveLength(2)
  })
})

describe('options of several commands', () => {
  it('every command that operates a fleet has the options --config, --redis, --prefix and --json', () => {
    const operating = COMMANDS.filter(({ options }) => 'admin' in options || 'redis' in options)
    expect(operating.map(({ name }) => name)).toEqual([
      'doctor',
      'status',
      'explain',
      'audit',
      'breaker',
      'limit',
      'key',
      'pause',
      'resume',
      'job-queue',
    ])
    for (const { options } of operating)
      expect(options).toMatchObject({ ...STORE_OPTIONS, json: {} })
  })
})

describe('spillway check', () => {
  it('check lists every mistake as JSON, and --no-secrets needs no secrets', async () => {
    const file = join(folder(), 'a.yaml')
    writeFileSync(file, 'vendors: { a: { protocol: openai, key: env:NOT_SET_ANYWHERE } }\n')
    const wrong = await run('check', file, '--json')
    expect(wrong.code).toBe(1)
    expect(JSON.parse(wrong.stdout)).toMatchObject({
      ok: false,
      mistakes: [{ file, line: 1, column: 40, path: 'vendors.a.key' }],
    })
    expect(await run('check', file, '--no-secrets')).toMatchObject({
      code: 0,
      stdout: `${file}: valid: 1 vendor, 1 route, 0 callers\n`,
    })
  })

  it('check without a file validates spillway.yaml of the current folder and names it', () => {
    const cwd = folder()
    writeFileSync(join(cwd, 'spillway.yaml'), 'vendors: { a: { protocol: openai } }\n')
    const stdout = execFileSync(process.execPath, [BIN, 'check'], { cwd, encoding: 'utf8' })
    expect(stdout).toBe('spillway.yaml: valid: 1 vendor, 1 route, 0 callers\n')
  })

  it('check warns of a gateway that sends its key for everyone', async () => {
    const file = join(folder(), 'a.yaml')
    const text = 'vendors: { a: { protocol: openai, key: env:NOT_SET_ANYWHERE } }\n'
    const warning =
      'host: warning: open to everyone who can reach port 8080, with your vendor key: set callers, or host: 127.0.0.1'
    writeFileSync(file, text)
    expect((await run('check', file, '--no-secrets')).stderr).toBe(`${file}  ${warning}\n`)
    writeFileSync(file, `${text}host: 0.0.0.0\n`)
    const { warnings } = JSON.parse((await run('check', file, '--no-secrets', '--json')).stdout)
    expect(warnings).toMatchObject([{ file, line: 2, column: 7, path: 'host' }])
    writeFileSync(file, `${text}host: 127.0.0.1\n`)
    expect((await run('check', file, '--no-secrets')).stderr).toBe('')
  })

  it('check warns of models in routes that no entry of models matches', async () => {
    const file = join(folder(), 'a.yaml')
    const entry = '{ match: gpt-4*, limits: [{ limit: 5, windowMs: 1m }] }'
    const text = `vendors: { a: { protocol: openai, models: [${entry}] } }
routes: [{ vendor: a, models: [gpt-4o, gpt-5, 'o*'] }]
`
    writeFileSync(file, text)
    const plain = await run('check', file)
    expect(plain).toMatchObject({ code: 0, stdout: expect.stringContaining('valid') })
    expect(plain.stderr).toBe(
      `${file}:2:40  routes[0].models[1]: warning: no entry of vendors.a.models matches the model 'gpt-5', so the vendor's own limits hold for it
    2 | routes: [{ vendor: a, models: [gpt-4o, gpt-5, 'o*'] }]
      |                                        ^
`,
    )
    const { warnings } = JSON.parse((await run('check', file, '--json')).stdout)
    expect(warnings).toMatchObject([{ file, line: 2, column: 40, path: 'routes[0].models[1]' }])
    writeFileSync(file, text.replace(`, models: [${entry}]`, ''))
    expect((await run('check', file)).stderr).toBe('')
  })
})

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
