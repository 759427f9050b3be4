import { open } from 'node:fs/promises'

/** The code of a system error. */
export const systemCodeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined

/** Makes a file, or the names in a folder, durable by fsync. Some file systems do not support that for folders, and do not need it. */
export async function syncPath (path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP', 'EPERM', 'EISDIR'].includes(systemCodeOf(error) ?? '')) throw error
  } finally {
    await handle.close()
  }
}
