CREATE TABLE "social_accounts" (
	"id" text PRIMARY KEY NOT NULL,
	"provider_id" text NOT NULL,
	"account_id" text NOT NULL,
	"user_id" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "social_accounts_identity" UNIQUE("provider_id","account_id")
);
--> statement-breakpoint
CREATE TABLE "social_identities" (
	"hash" text PRIMARY KEY NOT NULL,
	"provider" text NOT NULL,
	"username" text NOT NULL,
	"subject" text NOT NULL,
	"created" boolean NOT NULL,
	"verified" boolean NOT NULL,
	"bound" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "social_secret" (
	"id" integer PRIMARY KEY DEFAULT 1 NOT NULL,
	"data" jsonb NOT NULL,
	"sealed" text,
	CONSTRAINT "social_secret_is_one_row" CHECK ("social_secret"."id" = 1)
);
--> statement-breakpoint
CREATE TABLE "social_sessions" (
	"id" text PRIMARY KEY NOT NULL,
	"token" text NOT NULL,
	"user_id" text NOT NULL,
	"username" text NOT NULL,
	"mark" text NOT NULL,
	"ip_address" text,
	"user_agent" text,
	"expires_at" timestamp with time zone NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "social_sessions_token_unique" UNIQUE("token")
);
--> statement-breakpoint
CREATE TABLE "social_users" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"email" text NOT NULL,
	"email_verified" boolean NOT NULL,
	"image" text,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "social_users_email_unique" UNIQUE("email")
);
--> statement-breakpoint
ALTER TABLE "social_accounts" ADD CONSTRAINT "social_accounts_user_id_social_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."social_users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "social_sessions" ADD CONSTRAINT "social_sessions_user_id_social_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."social_users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "social_accounts_user" ON "social_accounts" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "social_identities_account" ON "social_identities" USING btree ("username","subject");--> statement-breakpoint
CREATE INDEX "social_sessions_user" ON "social_sessions" USING btree ("user_id","created_at");--> statement-breakpoint
CREATE INDEX "social_sessions_expires" ON "social_sessions" USING btree ("expires_at");