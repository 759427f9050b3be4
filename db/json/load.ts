import { errorCode, messageOf } from '../errors.ts'
import type { SettingsDocument } from '../apply.ts'
import { StorageError } from '../store.ts'
import type { SettingsFile } from './settings-file.ts'
import { parseSettings } from './parse.ts'

/** The reasons for temporary failures to read the file as clauses, by the system's error code. */
const transientReadErrors: Readonly<Record<string, string>> = {
  EMFILE: 'this process has too many files open',
  ENFILE: 'the system has too many files open',
  ENOMEM: 'no memory is left',
  EAGAIN: 'the system is too busy',
  EIO: 'the disk reports an error'
}

/** Waits for a read of the settings file, and converts its errors. @throws the error of `toReadError` */
export async function convertReadErrors<Result> (reading: Promise<Result>, path: string): Promise<Result> {
  return await reading.catch((error: unknown) => { throw toReadError(error, path) })
}

/**
 * Returns advice for the log, with a leading space, if too many files are open; empty for other failures.
 * @param reason the message of the StorageError
 */
export const openFilesAdvice = (reason: string): string =>
  /E[MN]FILE/.test(reason)
    ? ' Raise the limit of open files (ulimit -n, LimitNOFILE of systemd; fs.file-max for all processes).'
    : ''

/**
 * Converts the error for an existing settings file that cannot be read, to a StorageError if the failure is temporary.
 * The message of a StorageError contains no path, since it may reach a client.
 */
export function toReadError (error: unknown, path: string): Error {
  const code = errorCode(error) ?? messageOf(error)
  const failure = transientReadErrors[code]
  if (failure !== undefined) {
    return new StorageError(`The settings file cannot be read (${failure}, ${code}).`, false, code === 'EIO')
  }
  // `SettingsFile.read` throws ENOTFILE for a device, a named pipe or a socket.
  const reason = code === 'ENOTFILE' ? 'it is not a regular file' : code
  return new Error(
    `The settings file ${path} cannot be read (${reason}). Check that it is a file, and that this user may read it.`
  )
}

interface LoadOptions {
  disk: SettingsFile
  path: string
  /** Whether this process holds the lock, and therefore may write. */
  isLocked: boolean
  /** Restores a file that an interrupted write in place left incomplete. @returns whether that was the case */
  recover: () => Promise<boolean>
}

/**
 * Loads the document at the start, after restoring the file if a write in place was interrupted.
 * @returns the document, empty if there is no file, and messages about a restored file
 * @throws Error when the file cannot be read or parsed
 */
export async function loadDocument (
  { disk, path, isLocked, recover }: LoadOptions
): Promise<{ document: SettingsDocument, problems: string[] }> {
  let found = await convertReadErrors(disk.read(), path)
  if (found === undefined) return { document: {}, problems: [] }
  const problems: string[] = []
  let document: SettingsDocument
  try {
    document = parseSettings(found.bytes, path)
  } catch (error) {
    if (!await recover()) throw await withBackupHint(error, disk, path)
    found = await convertReadErrors(disk.read(), path)
    if (found === undefined) throw error
    document = parseSettings(found.bytes, path)
    problems.push(`A write of the settings file ${path} was interrupted; the file was restored from its .bak, the ` +
      'state before that write.')
  }
  disk.remember(found)
  if (isLocked) await disk.cleanUp()
  return { document, problems }
}

/** Adds to a parse error how to restore the backup, if there is one that can be parsed. */
async function withBackupHint (error: unknown, disk: SettingsFile, path: string): Promise<unknown> {
  const backup = await disk.readBackup()
  if (backup === undefined || !(error instanceof Error)) return error
  try {
    parseSettings(backup.bytes, backup.path)
  } catch {
    return error
  }
  return new Error(
    `${error.message} A valid backup, ${backup.path}, was written at ${backup.time.toISOString()}: ` +
    `to return to it, without the changes since then, copy it to ${path} and start again.`,
    { cause: error }
  )
}
