import { type LoginParty, type UserPage, UserActionRequired } from '../login/problems.ts'

/** Thrown when values are missing that a user gives for a server (`userVariables`). */
export class ValuesRequired extends UserActionRequired {
  protected readonly action = 'give your values for it'

  constructor (who: LoginParty, page: UserPage | undefined, message: string) {
    super(who, page, message)
    this.name = 'ValuesRequired'
  }

  override get messageForClients (): string {
    switch (this.who) {
      case 'manager': return 'it waits for values of its owner'
      case 'nobody': return 'it needs a user, who gives values of his own: use a key or an access token of a user'
      case 'user':
        if (this.flow) return `give your values for it first: open ${this.flow.url}`
        return 'give your values for it first, at PUT /api/servers/:name/my-variables'
    }
  }
}
