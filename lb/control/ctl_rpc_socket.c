/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_rpc_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKET_MODE 0660
#define FOLDER_MODE 0755
#define GROUP       "shunt"
#define BACKLOG     128

static int
make_address(const char *path, struct sockaddr_un *out)
{
	const size_t n = strlen(path);

	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (n == 0)
		return -EINVAL;
	if (n >= sizeof(out->sun_path))
		return -ENAMETOOLONG;
	memcpy(out->sun_path, path, n);
	return 0;
}

/* The socket's folder, where it alone is missing: /run is empty after a boot. */
static int
make_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)] = "";

	if (slash == NULL || slash == path)
		return 0;
	memcpy(folder, path, (size_t)(slash - path));
	if (mkdir(folder, FOLDER_MODE) != 0)
		return errno == EEXIST ? 0 : -errno;
	/* Whatever the umask is. */
	if (fchmodat(AT_FDCWD, folder, FOLDER_MODE, AT_SYMLINK_NOFOLLOW) != 0)
		return -errno;
	return 0;
}

static int
open_stream(void)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* 0 where a socket is stale; -EADDRINUSE where somebody listens. */
static int
try_connect(const struct sockaddr_un *address)
{
	const int fd = open_stream();
	int ret;

	if (fd < 0)
		return fd;
	ret = connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 ? errno : 0;
	(void)close(fd);
	switch (ret) {
	case ECONNREFUSED:
	case ENOENT: /* gone meanwhile */
		return 0;
	case 0:
	case EAGAIN:     /* its backlog is full */
	case EPROTOTYPE: /* it wants datagrams */
		return -EADDRINUSE;
	default:
		return -ret;
	}
}

/* Make room at the path where only a stale socket stands. */
static int
clear_path(const struct sockaddr_un *address)
{
	struct stat st;
	int ret;

	if (lstat(address->sun_path, &st) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	ret = try_connect(address);
	if (ret != 0)
		return ret;
	if (unlink(address->sun_path) != 0 && errno != ENOENT)
		return -errno;
	return 0;
}

static void
give_to_group(const char *path)
{
	const struct group *group = getgrnam(GROUP);
	int ret = 0;

	if (group != NULL)
		ret = lchown(path, (uid_t)-1, group->gr_gid);
	/* Who may not give it away runs without it: whoever runs the daemon has access. */
	(void)ret;
}

/*
 * The mode of the socket's own inode is what bind() gives the file, less the umask: so at no
 * time may more people open it than in the end. Nobody can connect before listen().
 */
static int
bind_and_listen(int fd, const struct sockaddr_un *address, struct stat *st)
{
	const char *path = address->sun_path;
	int ret;

	if (fchmod(fd, SOCKET_MODE) != 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) != 0)
		return -errno;
	give_to_group(path);
	if (chmod(path, SOCKET_MODE) == 0 && lstat(path, st) == 0 && listen(fd, BACKLOG) == 0)
		return 0;
	ret = -errno;
	(void)unlink(path);
	return ret;
}

int
ctl_rpc_socket_open(const char *path, struct ctl_rpc_socket *out)
{
	struct sockaddr_un address;
	struct stat st = {0};
	int fd;
	int ret = make_address(path, &address);

	if (ret == 0)
		ret = make_folder(address.sun_path);
	if (ret == 0)
		ret = clear_path(&address);
	if (ret != 0)
		return ret;
	fd = open_stream();
	if (fd < 0)
		return fd;
	ret = bind_and_listen(fd, &address, &st);
	if (ret != 0) {
		(void)close(fd);
		return ret;
	}
	out->fd = fd;
	out->address = address;
	out->device = st.st_dev;
	out->inode = st.st_ino;
	return 0;
}

void
ctl_rpc_socket_close(const struct ctl_rpc_socket *socket)
{
	const char *path = socket->address.sun_path;
	struct stat st;

	/* Another daemon may have put its own there since ours was removed by hand. */
	if (lstat(path, &st) == 0 && st.st_dev == socket->device && st.st_ino == socket->inode)
		(void)unlink(path);
	(void)close(socket->fd);
}
