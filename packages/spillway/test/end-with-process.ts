/**
 * Child processes that end together with this one, however it ends: test threads are stopped
 * without notice, and Ctrl-C runs no cleanup. A shell holds the other end of a pipe and ends them
 * when it breaks.
 */
import { type ChildProcess, spawn } from 'node:child_process'

const WATCH = `
  all=' '
  while read -r line; do
    case $line in
      +*) all="$all\${line#+} " ;;
      -*) gone="\${line#-}"; all="\${all%% $gone *} \${all#* $gone }" ;;
    esac
  done
  [ -n "\${all# }" ] && kill -9 $all 2>/dev/null
  exit 0`

let shell: ChildProcess | undefined

/** Returns a function to call when the process has ended by itself. */
export function endWithThisProcess(pid: number | undefined): () => void {
  if (pid === undefined) return () => {}
  shell ??= startShell()
  const { stdin } = shell
  stdin?.write(`+${pid}\n`)
  return () => void stdin?.write(`-${pid}\n`)
}

function startShell(): ChildProcess {
  // In a separate process group, so that Ctrl-C does not end it first.
  const child = spawn('sh', ['-c', WATCH], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  child.on('error', () => {})
  child.stdin?.on('error', () => {})
  child.unref()
  ;(child.stdin as unknown as { unref(): void }).unref()
  return child
}
