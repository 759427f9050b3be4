import { randomBytes } from 'node:crypto'
import {
  accessSync, closeSync, constants, fstatSync, openSync, readFileSync, realpathSync, renameSync, rmSync, statSync,
  writeFileSync
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { errorCode } from '../../../db/errors.ts'
import { ownCredentialPrefixes } from '../../../schemas/credential-prefixes.ts'

/** The content of the access file, with which the CLI reaches a gateway on the same machine. */
export interface AccessFile {
  readonly url: string
  /** A credential that is accepted only from this machine. */
  readonly token: string
  readonly pid: number
  /** `settings` and `database`: the location of the gateway's settings, from `storageLocation`. */
  readonly settings: string
  readonly database?: string
}

/**
 * Returns where a gateway stores its settings, in a form that can be compared: `database` omits user, password and
 * options.
 * @param settingsPath SETTINGS_PATH, absolute
 * @param dbUrl DB_URL
 */
export function storageLocation (
  settingsPath: string, dbUrl: string | undefined
): Pick<AccessFile, 'settings' | 'database'> {
  const settings = realPath(settingsPath)
  if (dbUrl === undefined) return { settings }
  const [, folder] = /^pglite:\/\/(.*)$/s.exec(dbUrl) ?? []
  const address = dbUrl.replace(/[?#].*$/s, '').replace(/^[^:]*:\/\/([^/]*@)?/, '')
  return { settings, database: folder === undefined ? address : realPath(resolve(folder)) }
}

/** Resolves symbolic links, also in the path of a file that does not exist yet. */
function realPath (path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path === dirname(path) ? path : join(realPath(dirname(path)), basename(path))
  }
}

/**
 * Whether a running gateway uses a storage.
 * @param storage the storage; if it has no `database`, only the paths of the settings files are compared
 * @param access the access file of the gateway
 */
export const isSameStorage = (storage: Pick<AccessFile, 'settings' | 'database'>, access: AccessFile): boolean =>
  storage.settings === access.settings && (storage.database === undefined || storage.database === access.database)

/** The path of the access file. */
const pathOf = (dataDir: string): string => join(dataDir, 'command-line.json')

/** Creates a credential for the access file. Its prefix distinguishes it from bearer keys. */
export const newLocalToken = (): string => `${ownCredentialPrefixes.local}${randomBytes(32).toString('hex')}`

/** Checks that a folder can be written to or created, but does not create it. @throws Error with a sentence */
export function requireWritableFolder (dataDir: string): void {
  for (let at = dataDir; ; at = dirname(at)) {
    const stats = statSync(at, { throwIfNoEntry: false })
    if (stats === undefined && at !== dirname(at)) continue
    const reason = stats?.isDirectory() === true ? accessProblem(at) : 'not a folder'
    if (reason === undefined) return
    throw new Error(`DATA_DIR cannot be written: ${at} is ${reason}. Set it to a folder that this user can write to.`)
  }
}

/** Returns the reason why a folder cannot be written to, as the end of a sentence; undefined if it can. */
function accessProblem (folder: string): string | undefined {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return undefined
  } catch (error) {
    return `closed to this user (${errorCode(error) ?? String(error)})`
  }
}

/**
 * Writes the access file, readable by its owner only, into an existing folder. Replaces the file of an earlier process.
 * @throws Error with a sentence, or an error of `node:fs`
 */
export function writeAccessFile (dataDir: string, access: AccessFile): void {
  requireWritableFolder(dataDir)
  replaceFile(pathOf(dataDir), `${JSON.stringify(access)}\n`)
}

/** Writes or replaces a file atomically, readable by its owner only. @throws errors of `node:fs` */
export function replaceFile (path: string, text: string): void {
  const temp = `${path}.${randomBytes(6).toString('hex')}`
  try {
    writeFileSync(temp, text, { flag: 'wx', mode: 0o600, flush: true })
    renameSync(temp, path)
  } finally {
    rmSync(temp, { force: true })
  }
}

/**
 * Removes the access file if it still contains this token, since another process may have replaced it. Never throws.
 */
export function removeAccessFile (dataDir: string, token: string): void {
  try {
    if (readAccessFile(dataDir)?.token === token) rmSync(pathOf(dataDir), { force: true })
  } catch {}
}

/**
 * Reads the access file.
 * @returns undefined if there is no valid access file
 * @throws Error with a sentence if users other than its owner may read the file, or this user may not
 */
export function readAccessFile (dataDir: string): AccessFile | undefined {
  const path = pathOf(dataDir)
  let file: number
  try {
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
  } catch (error) {
    const code = errorCode(error) ?? String(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new Error(`${path} cannot be read (${code}). Run the command as the user of the gateway, or set ` +
      'TOOL_HUB_URL and TOOL_HUB_KEY.')
  }
  try {
    const { mode, size } = fstatSync(file)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      throw new Error(`${path} is accessible to users other than its owner. Remove it, and restart the gateway.`)
    }
    return size > 4_096 ? undefined : parse(readFileSync(file, 'utf8'))
  } finally {
    closeSync(file)
  }
}

function parse (text: string): AccessFile | undefined {
  try {
    const { url, token, pid, settings, database } = JSON.parse(text) as Partial<Record<keyof AccessFile, unknown>>
    if (typeof url !== 'string' || typeof token !== 'string' || typeof pid !== 'number' ||
        typeof settings !== 'string') {
      return undefined
    }
    return { url, token, pid, settings, ...(typeof database === 'string' ? { database } : {}) }
  } catch {
    return undefined
  }
}
