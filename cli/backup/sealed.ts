import { linesOf } from './contents.ts'

/** Counts the sealed secrets of a file of JSON texts (`plugins/base/secrets/seal.ts`), by the ids of their keys. */
export async function countSealed (path: string, counts: Record<string, number>): Promise<void> {
  for await (const line of linesOf(path)) {
    for (const [, id = ''] of line.matchAll(/"v1\.([0-9a-f]{8})\.[\w-]{20,}"/g)) counts[id] = (counts[id] ?? 0) + 1
  }
}
