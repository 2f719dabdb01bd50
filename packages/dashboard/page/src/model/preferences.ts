/** Preferences of this reader, kept in local storage if the browser allows it. */
import { effect, signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'
export const RANGES = [
  { ms: 300_000, label: '5 min', words: 'last 5 minutes' },
  { ms: 900_000, label: '15 min', words: 'last 15 minutes' },
  { ms: 3_600_000, label: '1 h', words: 'last hour' },
] as const

export const theme = signal<Theme>(asTheme(read('theme')))
export const range = signal<(typeof RANGES)[number]>(RANGES[0])

const darkScheme = matchMedia('(prefers-color-scheme: dark)')
/** Incremented when colours change, so that canvases are painted again. */
export const paint = signal(0)

export function startPreferences(): void {
  effect(() => {
    const scheme = theme.value === 'system' ? 'light dark' : theme.value
    document.documentElement.style.colorScheme = scheme
    write('theme', theme.value)
    paint.value = paint.peek() + 1
  })
  darkScheme.addEventListener('change', () => {
    paint.value++
  })
}

function asTheme(text: string | undefined): Theme {
  return text === 'light' || text === 'dark' ? text : 'system'
}

function read(key: string): string | undefined {
  try {
    return localStorage.getItem(`spillway.${key}`) ?? undefined
  } catch {
    return undefined
  }
}

function write(key: string, value: string): void {
  try {
    localStorage.setItem(`spillway.${key}`, value)
  } catch {}
}
