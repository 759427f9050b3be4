import { errorCode, messageOf } from '../errors.ts'
import type { SettingsDocument } from '../apply.ts'
import { StorageError } from '../store.ts'
import type { SettingsFile } from './settings-file.ts'
import { parseSettings } from './parse.ts'

/** Clauses that describe temporary failures to read the settings file, by the system's error code. */
const transientReadErrors: Readonly<Record<string, string>> = {
  EMFILE: 'this process has too many files open',
  ENFILE: 'the system has too many files open',
  ENOMEM: 'no memory is left',
  EAGAIN: 'the system is too busy',
  EIO: 'the disk reports an error'
}

/** Waits for a read of the settings file, and converts its error with `toReadError`. */
export async function convertReadErrors<Result> (reading: Promise<Result>, path: string): Promise<Result> {
  return await reading.catch((error: unknown) => { throw toReadError(error, path) })
}

/**
 * Returns advice for the log about too many open files, with a leading space; an empty text for other failures.
 * @param reason the message of the read failure
 */
export const openFilesAdvice = (reason: string): string =>
  /E[MN]FILE/.test(reason)
    ? ' Raise the limit of open files (ulimit -n, LimitNOFILE of systemd; fs.file-max for all processes).'
    : ''

/**
 * Converts a system error from reading an existing settings file: a temporary failure becomes a StorageError, whose
 * message may reach a client and therefore contains no path; any other failure becomes an Error that names the path.
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
  /** Restores the file if an interrupted write in place left it incomplete. @returns whether it was restored */
  recover: () => Promise<boolean>
}

/**
 * Loads the settings document at the start. A file that an interrupted write left incomplete is restored first. If this
 * process holds the lock, the file also becomes private, and leftovers are removed (`SettingsFile.cleanUp`).
 * @returns the document, which is empty if there is no file; `problems`: a message if the file was restored
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

/**
 * Returns a parse error with advice on how to restore the backup; unchanged if there is no backup that can be parsed.
 */
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
