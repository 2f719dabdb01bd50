/** Icons with the meaning of their colour, for users who cannot distinguish two colours. */
import type { JSX } from 'preact'

/** Created for each use, because a Preact element belongs to the tree that rendered it first. */
const PATHS = {
  /** A full circle: closed, healthy, live. */
  closed: () => <circle cx="8" cy="8" r="5.5" fill="currentColor" />,
  /** Half a circle. */
  'half-open': () => (
    <>
      <circle cx="8" cy="8" r="5" fill="none" stroke="currentColor" stroke-width="2" />
      <path d="M8 3a5 5 0 0 1 0 10z" fill="currentColor" />
    </>
  ),
  /** A square with a gap across: nothing gets through. */
  open: () => <path d="M2.5 2.5h11v11h-11zM4.5 7v2h7V7z" fill="currentColor" fill-rule="evenodd" />,
  isolated: () => (
    <path
      d="M8 1.5 14.5 8 8 14.5 1.5 8zM8 5a1 1 0 0 0-1 1v4a1 1 0 0 0 2 0V6a1 1 0 0 0-1-1z"
      fill="currentColor"
      fill-rule="evenodd"
    />
  ),
  none: () => <circle cx="8" cy="8" r="2" fill="currentColor" />,
  warning: () => (
    <path
      d="M8 1 15.5 14.5H.5zM7.1 6l.3 4.2h1.2L8.9 6zM8 11.2a1 1 0 1 0 0 2 1 1 0 0 0 0-2z"
      fill="currentColor"
      fill-rule="evenodd"
    />
  ),
  passed: () => (
    <path d="m2.5 8.5 3.6 3.6 7.4-8" fill="none" stroke="currentColor" stroke-width="2.4" />
  ),
  refused: () => (
    <path d="m3.5 3.5 9 9m0-9-9 9" fill="none" stroke="currentColor" stroke-width="2.4" />
  ),
  waited: () => (
    <path
      d="M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3.3l2.2 1.4"
      fill="none"
      stroke="currentColor"
      stroke-width="1.8"
    />
  ),
  left: () => (
    <path d="M9 3.5 13.5 8 9 12.5M2.5 8H13" fill="none" stroke="currentColor" stroke-width="2" />
  ),
  pause: () => <path d="M4 3h3v10H4zm5 0h3v10H9z" fill="currentColor" />,
  play: () => <path d="M4 2.5v11l9-5.5z" fill="currentColor" />,
  shared: () => (
    <path
      d="M5 5.5a2 2 0 1 0 0-.1zm6 0a2 2 0 1 0 0-.1zM8 12a2 2 0 1 0 0-.1zM4.5 7l3 4M11.5 7l-3 4M6 5h4"
      fill="none"
      stroke="currentColor"
      stroke-width="1.4"
    />
  ),
  local: () => (
    <rect
      x="4"
      y="4"
      width="8"
      height="8"
      rx="1.5"
      fill="none"
      stroke="currentColor"
      stroke-width="1.6"
    />
  ),
  lock: () => (
    <path
      d="M4 7V5a4 4 0 0 1 8 0v2h1v7H3V7zm2 0h4V5a2 2 0 0 0-4 0z"
      fill="currentColor"
      fill-rule="evenodd"
    />
  ),
  sun: () => (
    <path
      d="M8 4.8a3.2 3.2 0 1 0 0 6.4 3.2 3.2 0 0 0 0-6.4zM8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.1 1.1M11.9 11.9 13 13M13 3l-1.1 1.1M4.1 11.9 3 13"
      fill="none"
      stroke="currentColor"
      stroke-width="1.6"
    />
  ),
  moon: () => <path d="M13.5 9.8A6 6 0 0 1 6.2 2.5a6 6 0 1 0 7.3 7.3z" fill="currentColor" />,
  system: () => (
    <path
      d="M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12"
      fill="currentColor"
      stroke="currentColor"
      fill-opacity=".9"
    />
  ),
  arrow: () => (
    <path d="M3 8h9M8.5 4 12.5 8l-4 4" fill="none" stroke="currentColor" stroke-width="1.8" />
  ),
  close: () => <path d="m4 4 8 8m0-8-8 8" fill="none" stroke="currentColor" stroke-width="1.8" />,
} as const satisfies Record<string, () => JSX.Element>

export type IconName = keyof typeof PATHS

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      aria-hidden="true"
      focusable="false"
    >
      {PATHS[name]()}
    </svg>
  )
}

export function Logo() {
  return (
    <svg
      class="logo"
      width="28"
      height="28"
      viewBox="0 0 32 32"
      aria-hidden="true"
      focusable="false"
    >
      <rect width="32" height="32" rx="7" fill="currentColor" />
      <path
        d="M5 11q5.5-5 11 0t11 0M5 18q5.5-5 11 0t11 0M5 25q5.5-5 11 0t11 0"
        fill="none"
        stroke="var(--on-accent)"
        stroke-width="3"
        stroke-linecap="round"
      />
    </svg>
  )
}
