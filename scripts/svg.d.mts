export type Point = readonly [x: number, y: number]

export declare const COLORS: Readonly<Record<'blue' | 'orange' | 'grey' | 'red', string>>
export declare function svg(
  file: { width: number; height: number; title: string },
  parts: readonly string[],
): string
export declare function text(
  x: number,
  y: number,
  words: string,
  style?: { anchor?: 'start' | 'middle' | 'end'; size?: number; weight?: number; color?: string },
): string
export declare function rect(
  x: number,
  y: number,
  width: number,
  height: number,
  color: string,
): string
export declare function line(
  from: Point,
  to: Point,
  style: { color: string; width?: number; opacity?: number; dashed?: boolean; title?: string },
): string
export declare function polyline(points: readonly Point[], color: string): string
export declare function valueAxis(axis: {
  most: number
  left: number
  right: number
  top: number
  bottom: number
  steps?: number
}): { y: (value: number) => number; parts: readonly string[] }
export declare function numberText(value: number): string
