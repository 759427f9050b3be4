export function filesOf (kind: string): string[]
export function batchesOf (files: string[], count: number): string[][]
