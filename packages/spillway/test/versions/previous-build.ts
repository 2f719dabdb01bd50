/**
 * Builds the library as it was one commit earlier, so that pods of two versions can run side by side.
 * The sources come from `git archive` and are only transpiled; their types were checked when they were
 * committed.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))
const PACKAGE = 'packages/spillway'
const TSC = join(ROOT, 'node_modules/typescript-native/bin/tsc')
/** Below node_modules, so that builds find the Redis clients and are kept for the next run. */
const CACHE = join(ROOT, 'node_modules/.cache/spillway-builds')

export interface PreviousBuild {
  /** A folder with package.json and dist. */
  readonly folder: string
  /** What it is, for the test's output. */
  readonly what: string
}

/**
 * `SPILLWAY_PREVIOUS` names the folder of a built package, such as an installed release. Otherwise the
 * parent of HEAD is built. Undefined if there is neither: a shallow clone, or no repository.
 */
export function previousBuild(env: NodeJS.ProcessEnv = process.env): PreviousBuild | undefined {
  const named = env.SPILLWAY_PREVIOUS
  if (named !== undefined && named !== '') return { folder: named, what: named }
  const commit = parentOfHead()
  if (commit === undefined) return undefined
  const folder = join(CACHE, commit)
  if (!existsSync(folder)) build(commit, folder)
  return { folder: join(folder, PACKAGE), what: `commit ${commit.slice(0, 10)}` }
}

function parentOfHead(): string | undefined {
  try {
    return git('rev-parse', '--verify', '--quiet', 'HEAD^{commit}^').toString().trim()
  } catch {
    return undefined
  }
}

/** Renamed to its final name when complete, so that an interrupted build is not used. */
function build(commit: string, folder: string): void {
  const unfinished = `${folder}-${process.pid}-${Date.now()}`
  mkdirSync(unfinished, { recursive: true })
  try {
    const archive = git('archive', commit, 'scripts', `${PACKAGE}/src`, `${PACKAGE}/package.json`)
    execFileSync('tar', ['-x', '-C', unfinished], { input: archive })
    execFileSync(process.execPath, [join(unfinished, 'scripts/build-lua.mjs')], { cwd: unfinished })
    transpile(join(unfinished, PACKAGE))
    renameSync(unfinished, folder)
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true })
    // Another run may have been faster.
    if (!existsSync(folder)) throw error
  }
}

function transpile(folder: string): void {
  const compilerOptions = {
    noCheck: true,
    noResolve: true,
    types: [],
    module: 'esnext',
    moduleResolution: 'bundler',
    target: 'es2022',
    rootDir: 'src',
    outDir: 'dist',
  }
  const config = { compilerOptions, include: ['src/**/*.ts'], exclude: ['src/**/*.test.ts'] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  execFileSync(process.execPath, [TSC, '-p', folder], { stdio: ['ignore', 'inherit', 'inherit'] })
}

function git(...args: string[]): Buffer {
  return execFileSync('git', args, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 2 ** 28,
  })
}
