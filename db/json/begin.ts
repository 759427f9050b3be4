import type { Document } from '../apply.ts'
import type { Disk } from './disk.ts'
import { parse } from './parse.ts'
import { codeOf } from './write.ts'

/** What was found, where the file can be read. @throws Error with a sentence */
export async function readable<Found> (found: Promise<Found>, path: string): Promise<Found> {
  return await found.catch((error: unknown) => {
    throw new Error(
      `The settings file ${path} cannot be read (${codeOf(error) ?? (error instanceof Error ? error.message : String(error))}). Check that it is a file and that this user may read it.`
    )
  })
}

interface Beginning {
  disk: Disk
  path: string
  /** Whether it is ours to write. */
  locked: boolean
  /** Mends a file that a write in place left in part. @returns whether it was that */
  recover: () => Promise<boolean>
}

/** The document at the start, mended where a write in place was interrupted. @throws Error with a sentence */
export async function begin ({ disk, path, locked, recover }: Beginning): Promise<{ document: Document, problems: string[] }> {
  let found = await readable(disk.read(), path)
  if (found === undefined) return { document: {}, problems: [] }
  const problems: string[] = []
  let document: Document
  try {
    document = parse(found.bytes, path)
  } catch (error) {
    if (!await recover()) throw error
    found = await readable(disk.read(), path)
    if (found === undefined) throw error
    document = parse(found.bytes, path)
    problems.push(`The settings file ${path} had been written only in part; it was put back from its .bak, as it was before that write.`)
  }
  disk.take(found)
  if (locked) await disk.tidy()
  return { document, problems }
}
