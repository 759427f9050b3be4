import type { Command } from 'commander'
import { randomBytes } from 'node:crypto'
import { askUser, canAskUser, readStdin } from '../io.ts'
import { withApi, type CommandRun } from '../context.ts'

interface User { username: string, isAdmin: boolean }
interface CreateOptions { admin?: boolean, passwordStdin?: boolean }

/** Registers the commands of `user`, which list and create accounts, and reset passwords. */
export function addUserCommands (program: Command, run: CommandRun): void {
  const user = program.command('user').description('accounts')
  user.command('list')
    .description('the accounts')
    .action(async (_options, command: Command) => {
      await withApi(run, command, async ({ api, out }) => {
        const users = await api.get<User[]>('/api/users')
        out.writeResult(users, () => users.length === 0
          ? 'There are no users yet: tool-hub user create <username> --admin'
          : out.formatTable(
            ['USERNAME', 'ROLE'], users.map(({ username, isAdmin }) => [username, isAdmin ? 'admin' : 'user'])
          ))
      })
    })

  user.command('create')
    .description('create an account')
    .argument('<username>')
    .option('--admin', 'with admin rights')
    .option('--password-stdin', 'read the password from stdin; by default, a random one is generated and shown')
    .action(async (username: string, { admin = false, passwordStdin = false }: CreateOptions, command: Command) => {
      const password = passwordStdin ? await readPassword(run, username) : randomPassword()
      await withApi(run, command, async ({ api, out }) => {
        const { data } = await api.request<{ data: User }>('POST', '/api/users', { username, password, isAdmin: admin })
        // Only the password is written to stdout, so that a script can read it.
        const shown = passwordStdin ? undefined : password
        out.writeResult({ ...data, password: shown }, shown ?? `The user ${JSON.stringify(data.username)} was added`)
        if (!passwordStdin && !out.isJson) {
          out.writeRemark(`This is the password of ${JSON.stringify(data.username)}. It is shown only once.`)
        }
      })
    })

  user.command('reset-password')
    .description('set a new password, which ends all logins of the account')
    .argument('<username>')
    .option('--password-stdin', 'read it from stdin; by default, a random one is generated and shown')
    .action(async (username: string, { passwordStdin = false }: { passwordStdin?: boolean }, command: Command) => {
      const newPassword = passwordStdin ? await readPassword(run, username) : randomPassword()
      await withApi(run, command, async ({ api, out }) => {
        await api.request('PUT', `/api/users/${encodeURIComponent(username)}`, { newPassword })
        const shown = passwordStdin ? undefined : newPassword
        out.writeResult({ username, password: shown }, shown ?? 'The password was changed')
        if (!passwordStdin && !out.isJson) {
          out.writeRemark(`This is the new password of ${JSON.stringify(username)}. It is shown only once.`)
        }
      })
    })
}

/** Asks for a password at the terminal, without displaying it; if stdin is not a terminal, reads it from stdin. */
const readPassword = async (run: CommandRun, username: string): Promise<string> =>
  canAskUser(run)
    ? await askUser(run, `New password of ${username}`, true)
    : (await readStdin(run)).replace(/\r?\n$/, '')

/** Returns a random password of about 120 bits, with a letter, a digit and a symbol, as the password rules require. */
function randomPassword (): string {
  for (;;) {
    const password = randomBytes(15).toString('base64url')
    if (/[A-Za-z]/.test(password) && /[0-9]/.test(password) && /[-_]/.test(password)) return password
  }
}
